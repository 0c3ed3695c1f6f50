import threading
def test_hang(postgres_url):
    threading.Event().wait(60)
def test_hang2(postgres_url):
    threading.Event().wait(60)
