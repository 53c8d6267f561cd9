"""Packed functions for the tests, beyond the `rpc.test.*` that the reference's server has.

rpc.test.ret(kind)         returns the value of RETURNS of that name
rpc.test.describe(*args)   says what arrived, arguments separated by "; " (see `describe`)
rpc.test.sleep(seconds)    returns None after that time
rpc.test.hang(path)        creates that file and never returns
rpc.test.raise(kind, msg)  raises the builtin exception of that name
rpc.test.shared(kind)      returns the object of SHARED of that name, the same one each time
rpc.test.use_count(kind)   how many references to that object there are
rpc.test.abort()           ends the session's process with SIGABRT; the reference's server
                           accepts no connection after that
"""

import builtins
import ctypes
import json
import os
import pathlib
import threading
import time

import numpy as np
import tvm
import tvm_ffi

RETURNS = {
    "none": lambda: None,
    "bool": lambda: True,
    "bool_false": lambda: False,
    "int": lambda: 42,
    "int_min": lambda: -(2**63),
    "int_max": lambda: 2**63 - 1,
    "float": lambda: 1.5,
    "str_empty": lambda: "",
    "str_short": lambda: "abcdefg",
    "str_long": lambda: "abcdefgh",
    "str_unicode": lambda: "grüße, 世界",
    "bytes_empty": lambda: b"",
    "bytes_short": lambda: b"\x00\x01\xfe\xff",
    "bytes_long": lambda: bytes(range(256)),
    "device": lambda: tvm.device("cpu", 0),
    "dtype": lambda: tvm_ffi.dtype("float32"),
    "tensor": lambda: tvm.runtime.tensor(np.arange(6, dtype="float32").reshape(2, 3)),
    "function": lambda: lambda x: x + 1,
    "module": tvm_ffi.system_lib,
    "object": lambda: tvm_ffi.Shape((2, 3)),
}


SHARED = {
    "tensor": tvm.runtime.tensor(np.arange(3, dtype="float32")),
    "function": tvm_ffi.convert(lambda x: x + 1),
    "object": tvm_ffi.Shape((2, 3)),
}


def describe_one(arg):
    """The kind of a value as the protocol knows it, and the value.

    none | bool true | int 42 | float 1.5 | str "JSON" | bytes "HEX" | device TYPE:ID
    dtype float32 | tensor float32 [2, 3] [0.0, 1.0, ...] | function | module KIND
    shape [2, 3] | pointer 0x5 | object CLASS
    """
    # bool before int: it is a subclass of it.
    if arg is None:
        return "none"
    if isinstance(arg, bool):
        return f"bool {str(arg).lower()}"
    if isinstance(arg, tvm_ffi.dtype):
        return f"dtype {arg}"
    if isinstance(arg, int):
        return f"int {int(arg)}"
    if isinstance(arg, float):
        return f"float {arg!r}"
    if isinstance(arg, str):
        return f"str {json.dumps(str(arg), ensure_ascii=False)}"
    if isinstance(arg, (bytes, bytearray)):
        return f'bytes "{bytes(arg).hex()}"'
    if isinstance(arg, tvm_ffi.Device):
        return f"device {arg.dlpack_device_type()}:{arg.index}"
    if isinstance(arg, tvm_ffi.Tensor):
        values = arg.numpy()
        return f"tensor {values.dtype} {list(values.shape)} {values.ravel().tolist()}"
    if isinstance(arg, tvm_ffi.Module):
        return f"module {arg.kind}"
    if isinstance(arg, tvm_ffi.Function):
        return "function"
    if isinstance(arg, tvm_ffi.Shape):
        return f"shape {list(arg)}"
    if isinstance(arg, ctypes.c_void_p):
        return f"pointer {arg.value or 0:#x}"
    return f"object {type(arg).__name__}"


def describe(*args):
    return "; ".join(describe_one(arg) for arg in args)


def raise_error(kind, message):
    raise getattr(builtins, kind)(message)


def hang(path):
    pathlib.Path(path).touch()
    threading.Event().wait()


def use_count(kind):
    return tvm.get_global_func("testing.object_use_count")(SHARED[kind])


def register():
    """Register the functions in this process; sessions inherit them, as forks of it."""
    functions = {
        "rpc.test.ret": lambda kind: RETURNS[kind](),
        "rpc.test.describe": describe,
        "rpc.test.sleep": time.sleep,
        "rpc.test.hang": hang,
        "rpc.test.raise": raise_error,
        "rpc.test.shared": lambda kind: SHARED[kind],
        "rpc.test.use_count": use_count,
        "rpc.test.abort": os.abort,
    }
    for name, function in functions.items():
        tvm.register_global_func(name, function)
