#!/usr/bin/env python3
"""A worker for signalbox tasks, with nothing but Python's standard library.

    signalbox serve &
    signalbox task publish sum-1 --data '{"numbers": [1, 2, 3]}'
    SIGNALBOX_SERVER_TOKEN=$(signalbox token local) python3 examples/worker.py --until-idle

It claims one task after another, renews its claim while it works, and completes or fails the task. The report is
written by one worker at a time: under a lock, with a ticket that keeps its place in the queue.
"""
import json
import os
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

SERVER = os.environ.get("SIGNALBOX_SERVER", "http://127.0.0.1:7300")
TOKEN = os.environ["SIGNALBOX_SERVER_TOKEN"]
HOLDER = f"worker:python-{os.getpid()}"


class Refused(Exception):
    """The server said no, and why: a problem (RFC 9457)."""

    def __init__(self, problem):
        super().__init__(problem["detail"])
        self.code = problem["code"]


def ask(path, body):
    """Sends one request, and gives the status and the answer."""
    request = urllib.request.Request(
        SERVER + path,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refused(json.load(error)) from None


class Renewing:
    """Renews a claim in the background, for as long as the work takes."""

    def __init__(self, claim):
        self.claim = claim
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.renew, daemon=True)

    def renew(self):
        task, token = urllib.parse.quote(self.claim["task"], safe=""), self.claim["token"]
        while not self.done.wait(self.claim["renewWithinMs"] / 1000):
            ask(f"/v1/tasks/{task}/renew", {"holder": HOLDER, "token": token})

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def with_lock(name, work):
    """Waits for a lock, for as long as it takes, and runs `work` under it."""
    path = f"/v1/locks/{urllib.parse.quote(name, safe='')}"
    status, answer = ask(f"{path}/acquire", {"holder": HOLDER, "waitMs": 20_000})
    while status == 202:
        status, answer = ask(f"{path}/acquire", {"holder": HOLDER, "ticket": answer["ticket"], "waitMs": 20_000})
    try:
        return work(answer["token"])
    finally:
        ask(f"{path}/release", {"holder": HOLDER, "token": answer["token"]})


def do(claim):
    """The work itself."""
    return {"sum": sum(claim["data"]["numbers"])}


def main():
    until_idle = "--until-idle" in sys.argv
    while True:
        try:
            _, claim = ask("/v1/tasks/claim", {"holder": HOLDER, "waitMs": 0 if until_idle else 30_000})
        except Refused as refusal:
            if refusal.code != "none":
                raise
            if until_idle:
                return
            continue
        path = f"/v1/tasks/{urllib.parse.quote(claim['task'], safe='')}"
        mine = {"holder": HOLDER, "token": claim["token"]}
        try:
            with Renewing(claim):
                result = do(claim)
        except (KeyError, TypeError) as error:
            ask(f"{path}/fail", {**mine, "reason": f"the data makes no sense: {error}"})
            continue
        ask(f"{path}/complete", {**mine, "result": result})
        with_lock("report", lambda _: print(f"{claim['task']}: {result['sum']}", flush=True))


main()
