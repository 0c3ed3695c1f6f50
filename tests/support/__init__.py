"""What the tests share: real servers to run against, and ways to wait."""
