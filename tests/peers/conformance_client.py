"""The script of the conformance suite for clients (docs/client-script.md), for the reference's client.

    conformance_client.py TRACKER KEY
"""

import gc
import json
import os
import sys

import numpy as np
import tvm
import tvm_ffi
from tvm import rpc


def option(name, default=None):
    return os.environ.get(f"TVM_RPC_CASE_{name}", default)


def say(step, ok=True, **more):
    print(json.dumps({"step": step, "ok": ok, **more}), flush=True)


def number(text):
    return float(text) if "." in text else int(text)


def kind_and_text(value):
    """What a function gave, as the script prints it."""
    if value is None:
        return "none", ""
    for types, kind, text in [
        (bool, "bool", lambda: str(value).lower()),
        (int, "int", lambda: str(value)),
        (float, "float", lambda: repr(value)),
        (tvm_ffi.dtype, "dtype", lambda: str(value)),
        (str, "str", lambda: str(value)),
        ((bytes, bytearray), "bytes", lambda: bytes(value).hex()),
        (tvm_ffi.Device, "device", lambda: f"{value.dlpack_device_type()}:{value.index}"),
        (tvm.runtime.Tensor, "tensor", lambda: "x".join(map(str, value.shape))),
        (tvm.runtime.Module, "module", lambda: ""),
        (tvm_ffi.Function, "function", lambda: ""),
        (tvm_ffi.Object, "object", lambda: ""),
    ]:
        if isinstance(value, types):
            return kind, text()
    return "pointer", str(getattr(value, "value", value))


class Client:
    def __init__(self, tracker, key):
        host, _, port = tracker.rpartition(":")
        self.key = key
        self.tracker = rpc.connect_tracker(host, int(port))
        self.options = {}
        if option("PRIORITY"):
            self.options["priority"] = int(option("PRIORITY"))
        if option("SESSION_TIMEOUT"):
            self.options["session_timeout"] = number(option("SESSION_TIMEOUT"))
        if option("TRIES"):
            self.options["max_retry"] = int(option("TRIES"))
        if option("CONSTRUCTOR"):
            self.options["session_constructor_args"] = json.loads(option("CONSTRUCTOR"))
        self.elements = int(option("ELEMENTS", "6"))

    def session(self):
        self.remote = self.tracker.request(self.key, **self.options)

    def again(self):
        self.end()
        self.session()

    def call(self):
        echo = self.remote.get_function("conformance.echo")
        for value in [None, 42, -1, True, False, 1.5, "", "text", "a longer text", "é😀"]:
            found = echo(value)
            same = found == value and isinstance(found, type(value))
            assert same, f"{value!r} came as {found!r}"
        for value in [b"", b"\0\1\xff", bytes(range(256))]:
            assert bytes(echo(bytearray(value))) == value, value
        assert str(echo(tvm_ffi.dtype("float32"))) == "float32"
        assert echo(self.remote.cpu(0)) == tvm.cpu(0)
        assert echo(7, "second", 2.5) == 7

    def give(self):
        kind, text = kind_and_text(self.remote.get_function("conformance.give")())
        gc.collect()
        return {"type": kind, "value": text}

    def tensor(self):
        there = np.arange(self.elements, dtype="float32")
        tensor = tvm.runtime.tensor(there, self.remote.cpu(0))
        np.testing.assert_equal(tensor.numpy(), there)

    def missing(self):
        try:
            self.remote.get_function("conformance.missing")
        except AttributeError:
            return
        raise AssertionError("a function was found that is not there")

    def fail(self):
        function = self.remote.get_function("conformance.fail")
        try:
            function()
        except Exception as error:
            return error_and_text(error)
        raise AssertionError("the function did not fail")

    def end(self):
        del self.remote
        gc.collect()


def error_and_text(error):
    kinds = {"RPCSessionTimeoutError": "timeout", "RPCError": "exception"}
    return {"error": kinds.get(type(error).__name__, "other"), "text": str(error)}


def main():
    steps = ["session", *filter(None, option("STEPS", "call,tensor,missing,fail").split(",")), "end"]
    client = None
    for step in steps:
        try:
            client = client or Client(sys.argv[1], sys.argv[2])
            say(step, **(getattr(client, step)() or {}))
        except Exception as error:
            say(step, False, **error_and_text(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
