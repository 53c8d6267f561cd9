"""A tracker, written from chapter 2 of this book.

    python3 docs/examples/tracker.py PORT [--host HOST]

Port 0 takes a free one. Needs Python 3.9 or later and nothing else. Numbers in comments are clauses.
"""

import argparse
import asyncio
import bisect
import collections
import itertools
import json
import socket
import struct

MAGIC = bytes.fromhex("71f20200")  # 2.1.1
MAX_FRAME = 1 << 20  # 2.2.7
PATIENCE = 30  # seconds for a greeting, and for a peer that does not read its answers: 1.3.3

Device = collections.namedtuple("Device", "owner key host port match_key")


class Refused(Exception):
    """The request is none; the text says why."""


def need(condition, why):
    if not condition:
        raise Refused(why)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)  # to Python, True is 1


def is_port(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535


def integer(digits):
    # Python takes minutes for an integer of a million digits; a float of them is infinite at once.
    return int(digits) if len(digits) < 20 else float(digits)


def not_json(name):
    raise ValueError(name + " is not JSON")  # Python would take NaN and Infinity: 2.3.3


def read_json(frame):
    try:
        value = json.loads(frame.decode("utf-8"), parse_int=integer, parse_constant=not_json)
        # Whatever could not be written again is refused here, so that no answer to others can
        # fail on it: halves of surrogate pairs (2.3.8), and numbers that overflow, as 1e999.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
        return value
    except (ValueError, RecursionError):  # a hundred thousand brackets: 2.3.3
        raise Refused("not JSON") from None


class Queue:
    """The devices of one key that are free, and the requests that wait for one. One is empty, always."""

    def __init__(self):
        self.free = collections.deque()  # in the order of the puts: 2.5.6
        self.waiting = []  # (-priority, number, connection), sorted: 2.5.3, 2.5.4


class Tracker:
    def __init__(self):
        self.queues = collections.defaultdict(Queue)
        self.connections = {}  # as a set, but in the order of coming
        self.numbers = itertools.count()

    def put(self, device):
        queue = self.queues[device.key]
        while queue.waiting:
            client = queue.waiting.pop(0)[2]
            if client.is_there():  # 2.6.4
                return client.grant(device)
        queue.free.append(device)
        device.owner.left.append(device)

    def request(self, client, key, priority):
        queue = self.queues[key]
        while queue.free:
            device = queue.free.popleft()
            device.owner.left.remove(device)  # 2.7.2
            if device.owner.is_there():  # 2.6.1
                return client.grant(device)
        bisect.insort(queue.waiting, (-priority, next(self.numbers), client))

    def forget(self, connection):
        """Takes out all that a connection offered (2.6.1, 2.6.2) and asked for (2.6.6)."""
        self.connections.pop(connection, None)
        for key in connection.keys:
            queue = self.queues[key]
            queue.free = collections.deque(d for d in queue.free if d.owner is not connection)
            queue.waiting = [w for w in queue.waiting if w[2] is not connection]
            if not queue.free and not queue.waiting:
                del self.queues[key]  # or keys of long ago would fill the memory

    def summary(self):
        servers = [c for c in self.connections if c.info]
        queues = {key: (len(q.free), len(q.waiting)) for key, q in self.queues.items()}
        for server in servers:
            for key in server.served:
                queues.setdefault(key, (0, 0))  # 2.8.6
        return {
            "queue_info": {key: {"free": f, "pending": p} for key, (f, p) in queues.items()},
            "server_info": [server.info for server in servers],
        }


class Connection(asyncio.Protocol):
    """One peer. Its methods are called one at a time, so that nothing here needs a lock."""

    def __init__(self, tracker):
        self.tracker = tracker
        self.received = bytearray()
        self.greeted = self.full = self.ended = False
        self.info = None  # what it said of itself: 2.8.3
        self.left = []  # devices that it offers and nobody has taken: 2.7.1
        self.keys = set()  # of its puts and requests
        self.served = set()  # of its puts and its update info

    # What asyncio calls.

    def connection_made(self, transport):
        self.transport = transport
        self.peer = transport.get_extra_info("peername")
        self.socket = transport.get_extra_info("socket")
        # A device that lost its power does not say goodbye.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.tracker.connections[self] = True
        self.start_deadline()

    def data_received(self, data):
        self.received += data  # 1.3.1: a piece is not a message
        self.work()

    def eof_received(self):
        self.end()  # 2.6.7; answers that are on their way are still sent

    def connection_lost(self, error):
        self.end()  # 2.6.8
        self.deadline.cancel()

    def pause_writing(self):  # the peer asks and does not read: take no more requests of it
        self.full = True
        self.transport.pause_reading()
        self.start_deadline()

    def resume_writing(self):
        self.full = False
        if not self.ended:
            self.deadline.cancel()
            self.transport.resume_reading()
            self.work()

    # The conversation.

    def start_deadline(self):
        self.deadline = asyncio.get_running_loop().call_later(PATIENCE, self.transport.abort)

    def end(self):
        if not self.ended:
            self.ended = True
            self.tracker.forget(self)
            self.transport.close()  # sends what was answered; who does not read it has a deadline, too
            self.deadline.cancel()
            self.start_deadline()

    def work(self):
        """Serves all frames that are complete."""
        if not self.greeted:
            if not MAGIC.startswith(self.received[:4]):
                return self.end()  # 2.1.2
            if len(self.received) < 4:
                return  # 2.1.3
            del self.received[:4]
            self.greeted = True
            self.deadline.cancel()
            self.transport.write(MAGIC)  # 2.1.1
        while not self.ended and not self.full and len(self.received) >= 4:
            (length,) = struct.unpack_from("<i", self.received)  # 1.2.1
            if not 0 < length <= MAX_FRAME:
                return self.end()  # 2.2.4, 2.2.5: on the length alone
            if len(self.received) < 4 + length:
                return  # 2.2.2
            frame = bytes(self.received[4 : 4 + length])
            del self.received[: 4 + length]
            try:
                self.serve(read_json(frame))
            except Refused as why:
                self.answer([-1, str(why)])  # 2.3.1: so the connection can go on

    def answer(self, value):
        text = json.dumps(value).encode("ascii")  # 2.2.9, 2.2.10, 2.2.11
        self.transport.write(struct.pack("<i", len(text)) + text)

    def grant(self, device):
        self.answer([0, [device.host, device.port, device.match_key]])  # 2.5.1

    def is_there(self):
        """Whether the peer is still there: its end may have come, but not been read yet."""
        if self.ended or self.transport.is_closing():
            return False
        try:
            with self.socket.dup() as raw:
                return raw.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True  # it says nothing, as one who waits does
        except OSError:
            return False

    def serve(self, request):
        need(isinstance(request, list) and request and is_number(request[0]), "not a request")
        code, arguments = request[0], request[1:]  # 1.0 is equal to 1: 2.3.6
        if code == 1:
            self.answer(0)
        elif code == 2:
            self.answer(-1)  # 2.9.1: no key stops this tracker
        elif code == 3:
            self.serve_put(arguments)
        elif code == 4:
            self.serve_request(arguments)
        elif code == 5:
            self.serve_update_info(arguments)
        elif code == 6:
            self.answer([0, self.tracker.summary()])
        elif code == 7:
            self.answer([device.match_key for device in self.left])
        else:
            raise Refused("unknown code")  # 2.3.1

    def serve_put(self, arguments):
        need(len(arguments) >= 2, "too few elements")
        key, pair = arguments[:2]
        host = arguments[2] if len(arguments) > 2 else None
        need(isinstance(key, str), "the key is no text")
        need(isinstance(pair, list) and len(pair) == 2, "no pair of port and match key")
        port, match_key = pair
        need(is_port(port), "no port")
        need(isinstance(match_key, str), "the match key is no text")
        need(host is None or isinstance(host, str), "the address is no text")
        self.keys.add(key)
        self.served.add(key)
        self.answer(0)
        self.tracker.put(Device(self, key, host or self.peer[0], port, match_key))  # 2.4.3, 2.4.4

    def serve_request(self, arguments):
        need(len(arguments) >= 3, "too few elements")
        key, user, priority = arguments[:3]
        need(isinstance(key, str) and isinstance(user, str), "the key or the user is no text")
        need(is_number(priority), "the priority is no number")  # 2.5.12
        self.keys.add(key)
        self.tracker.request(self, key, priority)

    def serve_update_info(self, arguments):
        info = arguments[0] if arguments else None
        need(isinstance(info, dict) and isinstance(info.get("key"), str), "no key")
        host, port = self.peer[:2]  # 2.4.11: old servers give no address
        if info.get("addr") is not None:
            need(isinstance(info["addr"], list) and len(info["addr"]) == 2, "no address")
            host, port = info["addr"]
            need(host is None or isinstance(host, str), "the host is no text")
            need(is_port(port) or isinstance(port, str), "no port")  # 2.4.10
        self.info = {"key": info["key"], "addr": [host or self.peer[0], port]}  # 2.8.4, 2.8.7
        if info["key"].startswith("server:"):
            self.served.add(info["key"][len("server:") :])
        self.answer(0)  # 2.4.9


async def main():
    parser = argparse.ArgumentParser(description="a tracker")
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    arguments = parser.parse_args()
    tracker = Tracker()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(tracker), arguments.host, arguments.port, backlog=1024)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening on {host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
