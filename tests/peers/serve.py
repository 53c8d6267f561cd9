"""Run one peer of the reference implementation for the tests, on loopback.

    serve.py tracker [--port P] [--stop-key K]
    serve.py server  [--port P] [--key K] [--tracker H:P] [--custom-addr A] [--test-functions]
    serve.py proxy   [--port P] [--tracker H:P]

Prints `listening on HOST:PORT` on standard output once the peer accepts, and nothing
else; what the peer itself prints goes to standard error. Ends, together with the
session processes that a server forked, at end of file on standard input or on SIGTERM,
so a test that dies takes its peers along.

The peers are the state objects that the reference's Tracker, Server and Proxy classes
build in a worker process of their own; building them here saves that process.
"""

import argparse
import os
import random
import signal
import sys

import psutil

HOST = "127.0.0.1"

# The peers cannot ask the system for a port, only search a range. It lies below Linux's
# ephemeral ports; the random start keeps peers that start together apart.
FIRST_PORTS = range(15000, 31000)
END_PORT = 32000


def address(text):
    host, _, port = text.rpartition(":")
    return (host, int(port))


def parse_arguments():
    parser = argparse.ArgumentParser()
    roles = parser.add_subparsers(dest="role", required=True)
    tracker = roles.add_parser("tracker")
    server = roles.add_parser("server")
    proxy = roles.add_parser("proxy")
    for role in (tracker, server, proxy):
        role.add_argument("--port", type=int, help="exactly this port, instead of a free one")
    for role in (server, proxy):
        role.add_argument("--tracker", type=address, metavar="HOST:PORT")
    tracker.add_argument("--stop-key", default="")
    server.add_argument("--key", default="")
    server.add_argument("--custom-addr")
    server.add_argument("--test-functions", action="store_true")
    return parser.parse_args()


def start_tracker(args, ports):
    from tvm.rpc import base
    from tvm.rpc.tracker import PopenTrackerServerState

    # The tracker draws its stop key at random and cannot be given one.
    base.random_key = lambda prefix: args.stop_key
    return PopenTrackerServerState(HOST, **ports)


def start_server(args, ports):
    from tvm.rpc.server import PopenRPCServerState

    if args.test_functions:
        import test_functions

        test_functions.register()
    return PopenRPCServerState(
        HOST,
        key=args.key,
        tracker_addr=args.tracker,
        custom_addr=args.custom_addr,
        **ports,
    )


def start_proxy(args, ports):
    from tvm.rpc.proxy import PopenProxyServerState

    return PopenProxyServerState(HOST, tracker_addr=args.tracker, **ports)


def end_with_children():
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            pass
    # The peer's threads never return, so the interpreter cannot finish by itself.
    os._exit(0)


def main():
    args = parse_arguments()

    announce = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    signal.signal(signal.SIGTERM, lambda signum, frame: end_with_children())
    # The server ends a session that outlives its time limit with SIGTERM.
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))

    if args.port is None:
        ports = {"port": random.choice(FIRST_PORTS), "port_end": END_PORT}
    else:
        ports = {"port": args.port, "port_end": args.port + 1}
    start = {"tracker": start_tracker, "server": start_server, "proxy": start_proxy}[args.role]
    peer = start(args, ports)
    print(f"listening on {HOST}:{peer.port}", file=announce, flush=True)

    # Not through sys.stdin: a session forked meanwhile would inherit its lock, held.
    while os.read(0, 4096):
        pass
    end_with_children()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        # A thread that the peer has started already would keep the process alive.
        print(f"serve.py: {error}", file=sys.stderr, flush=True)
        os._exit(1)
