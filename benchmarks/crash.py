"""Kill a service with SIGKILL while clients write, again and again: what was acknowledged is there, once.

    python -m benchmarks.crash [--times 20] [--sends 200] [--clients 8] [--database URL]

Each client keeps to one conversation, so the order of what it sent can be checked too. It exits 1 if
anything is lost, doubled or out of order.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.organisation import MeasuredService
from steadmesh.client.http import Service, Unreachable

LIMIT = 120.0


@dataclass
class Client:
    """One seat that writes to another, message after message, and remembers what was acknowledged."""

    service: Service
    token: str
    generation: int
    recipient: str
    conversation: str | None = None
    acknowledged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "X-Steadmesh-Generation": str(self.generation),
        }
        answer = self.service.request(
            "POST", f"/v1/tools/{tool}", body={"arguments": arguments}, headers=headers
        )
        if answer.status != 200 or answer.json().get("is_error"):
            raise RuntimeError(f"{tool}: HTTP {answer.status} {answer.body.decode()[:200]}")
        return dict(answer.json()["content"])

    def send(self, text: str) -> None:
        arguments = {"to": self.recipient, "body": text}
        if self.conversation:
            arguments["conversation_id"] = self.conversation
        began = time.monotonic()
        try:
            sent = self.call("messages.send", arguments)
        except (RuntimeError, Unreachable) as problem:
            self.refused.append(f"{text}: {problem}")
            return
        self.seconds.append(time.monotonic() - began)
        self.conversation = sent["conversation_id"]
        self.acknowledged.append(text)

    def stored(self) -> list[str]:
        """Every message of the conversation, in its order."""
        bodies: list[str] = []
        cursor = ""
        while True:
            page = self.call(
                "messages.history",
                {"conversation_id": self.conversation, "limit": 50, "cursor": cursor},
            )
            bodies += [message["body"] for message in page["messages"]]
            cursor = page["next_cursor"]
            if not cursor:
                return bodies


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--times", type=int, default=20, help="how often the service is killed")
    options.add_argument("--sends", type=int, default=200, help="between two kills")
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--database", help="a PostgreSQL URL instead of SQLite")
    given = options.parse_args()
    service = MeasuredService(given.database)
    try:
        clients = [_client(service, n) for n in range(given.clients)]
        each = given.sends // given.clients
        away = [_round(service, clients, time_of, each) for time_of in range(given.times)]
        wrong = [complaint for client in clients for complaint in _complaints(client)]
    finally:
        service.close()
    slowest = [max(client.seconds) for client in clients]
    print(
        f"{given.times} kills, {sum(len(client.acknowledged) for client in clients)} acknowledged; "
        f"the service was away for {median(away):.2f} s (median), {max(away):.2f} s at most; "
        f"the longest that a client waited for an answer: {max(slowest):.2f} s"
    )
    for complaint in wrong:
        print(complaint)
    if wrong:
        raise SystemExit(1)
    print("nothing lost, nothing twice, every conversation in order, no call failed")


def _client(service: MeasuredService, number: int) -> Client:
    token = service.token(f"sender_{number:02d}")
    reached = Service([f"http://127.0.0.1:{service.port}"])
    return Client(reached, token, service.acquire(token), f"recipient_{number:03d}")


def _round(service: MeasuredService, clients: list[Client], time_of: int, each: int) -> float:
    """All clients send; in the midst of it the service is killed and started again. Seconds it was away."""
    threads = [
        threading.Thread(
            target=lambda client=client: [
                client.send(f"{time_of}.{number}") for number in range(each)
            ],
            daemon=True,
        )
        for client in clients
    ]
    enough = sum(len(client.acknowledged) for client in clients)
    enough += int(each * len(clients) * random.uniform(0.2, 0.8))
    for thread in threads:
        thread.start()
    until = time.monotonic() + LIMIT
    while sum(len(client.acknowledged) for client in clients) < enough:
        if time.monotonic() > until:
            raise SystemExit("the clients do not get on")
        time.sleep(0.001)
    service.kill()
    began = time.monotonic()
    service.start()
    away = time.monotonic() - began
    for thread in threads:
        thread.join(LIMIT)
    return away


def _complaints(client: Client) -> list[str]:
    stored = client.stored()
    found = [f"{client.recipient}: not served: {text}" for text in client.refused]
    if len(set(stored)) != len(stored):
        twice = sorted({text for text in stored if stored.count(text) > 1})
        found.append(f"{client.recipient}: twice: {', '.join(twice)}")
    if missing := [text for text in client.acknowledged if text not in set(stored)]:
        found.append(f"{client.recipient}: acknowledged and lost: {', '.join(missing)}")
    if [text for text in stored if text in set(client.acknowledged)] != client.acknowledged:
        found.append(f"{client.recipient}: out of order")
    return found


if __name__ == "__main__":
    main()
