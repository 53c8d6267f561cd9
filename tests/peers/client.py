"""Do one thing with the reference's own client, for the tests of servers and trackers.

    client.py CASE --server H:P [--key K] [--hop H:P] [--hop-key K]
    client.py CASE --tracker H:P --key K
    client.py crash --server H:P --key K --library FILE

The cases of compiled modules take these from the directory TVM_RPC_MODULES.

Exits with 0 if everything was as it should be, and with a traceback otherwise. What is right was
read off the reference's own server and tracker, on which the same cases pass.
"""

import argparse
import gc
import json
import os
import time

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, rpc

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def address(text):
    host, _, port = text.rpartition(":")
    return (host, int(port))


def connect(args, **options):
    return rpc.connect(*args.server, key=args.key, **options)


def through_hop(args):
    """A session on --hop, by way of --server."""
    host, port = args.hop
    constructor = ["rpc.Connect", host, port, args.hop_key, False]
    return connect(args, session_constructor_args=constructor)


def opened(args):
    """A session by whichever way the arguments say."""
    if args.tracker:
        return rpc.connect_tracker(*args.tracker).request(args.key, session_timeout=60)
    return through_hop(args) if args.hop else connect(args)


def raises(kinds, action, *words):
    """The message of the exception, which has to be of one of these kinds and hold these words."""
    try:
        action()
    except kinds as error:
        message = str(error)
        for word in words:
            assert word in message, f"{word!r} is not in {message!r}"
        return message
    raise AssertionError(f"expected one of {kinds}")


def check_values(session):
    echo = session.get_function("testing.echo")
    for value in [0, 1, -1, 2**62, -(2**63), True, False, 1.5, -0.0, float("inf"), None]:
        assert echo(value) == value, value
        assert type(echo(value)) is type(value), value
    for text in ["", "a", "1234567", "12345678", "é😀", "x" * 100_000, "line\nline"]:
        assert echo(text) == text, text[:20]
    for data in [b"", b"\0", b"1234567", b"12345678", bytes(range(256)) * 1000]:
        assert bytes(echo(bytearray(data))) == data, data[:20]
    assert echo(1, 2, 3) == 1
    assert str(echo(tvm_ffi.dtype("float32x4"))) == "float32x4"
    assert echo(session.cpu(3)) == tvm.cpu(3)


def check_functions(session):
    addone = session.get_function("rpc.test.addone")
    assert addone(10) == 11
    assert session.get_function("rpc.test.strcat")("abc", 11) == "abc:11"
    joined = session.get_function("rpc.test.runtime_str_concat")
    assert str(joined(tvm_ffi.core.String("abc"), tvm_ffi.core.String("def"))) == "abcdef"
    add = session.get_function("rpc.test.add_to_lhs")(10)
    assert add(12) == 22 and add(-10) == 0
    raises(AttributeError, lambda: session.get_function("no.such.function"))
    assert addone(1) == 2


def check_exceptions(session):
    fails = session.get_function("rpc.test.except")
    raises(tvm.error.RPCError, lambda: fails("the text"), "the text")
    kinds = session.get_function("testing.test_raise_error")
    raises(RuntimeError, lambda: kinds("RuntimeError", "another text"), "another text")
    # Nothing is wrong with the session after that.
    raises(RuntimeError, lambda: session.get_function("rpc.test.strcat")("abc"))
    assert session.get_function("rpc.test.addone")(1) == 2


def check_tensors(session):
    device = session.cpu(0)
    assert str(device).startswith("remote")
    ones = tvm.runtime.tensor(np.ones((3, 4)), device)
    np.testing.assert_equal(ones.numpy(), np.ones((3, 4)))
    session.get_function("rpc.test.remote_tensor_func")(ones)
    for dtype in ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]:
        for shape in [(), (1,), (3, 5), (2, 3, 4), (0,), (4, 0)]:
            there = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
            back = tvm.runtime.tensor(there, device).numpy()
            assert back.dtype == there.dtype and back.shape == there.shape
            np.testing.assert_equal(back, there)
    for shape in [(5041, 720), (720, 192), (4097,)]:
        there = np.random.default_rng(1).random(shape, dtype="float32")
        np.testing.assert_equal(tvm.runtime.tensor(there, device).numpy(), there)
    source = tvm.runtime.tensor(np.arange(12, dtype="float32"), device)
    target = tvm.runtime.empty((12,), "float32", device)
    source.copyto(target)
    np.testing.assert_equal(target.numpy(), np.arange(12))
    device.sync()


def check_returned_tensors(session):
    get = session.get_function("rpc.test.remote_return_nd")
    get_arr, get_elem, get_arr_elem = get("get_arr"), get("get_elem"), get("get_arr_elem")
    arr = get_arr()
    assert get_elem(0) == 0.0
    assert get_arr_elem(arr, 0) == 0.0
    np.testing.assert_equal(arr.numpy(), np.zeros(10, "float32"))
    del arr
    gc.collect()
    assert get_elem(0) == 0.0
    raises(RuntimeError, lambda: get("anything else"), "unknown name")


def check_files(session):
    for blob in [b"", b"0123456789", bytes(range(256)) * 40_000]:
        session.upload(bytearray(blob), "dat.bin")
        assert session.download("dat.bin") == blob
    path = session.get_function("tvm.rpc.server.workpath")("dat.bin")
    assert path.endswith("/dat.bin"), path
    session.remove("dat.bin")
    raises(RuntimeError, lambda: session.download("dat.bin"))
    session.remove("dat.bin")


def check_devices(session):
    assert session.cpu(0).exist
    assert not session.cuda(0).exist
    assert session.cpu(0).device_name is None
    raises(RuntimeError, lambda: tvm.runtime.empty((1,), "float32", session.cuda(0)))
    assert session.cpu(0).exist


def check_all(session):
    check_values(session)
    check_functions(session)
    check_exceptions(session)
    check_tensors(session)
    check_returned_tensors(session)
    check_devices(session)


@case
def values(args):
    check_values(connect(args))


@case
def functions(args):
    check_functions(connect(args))


@case
def exceptions(args):
    check_exceptions(connect(args))


@case
def tensors(args):
    check_tensors(connect(args))


@case
def returned_tensors(args):
    check_returned_tensors(connect(args))


@case
def files(args):
    check_files(connect(args))


@case
def devices(args):
    check_devices(connect(args))


@case
def owners_are_counted(args):
    """Not on the reference's server, whose function for it does not work."""
    session = connect(args)
    get = session.get_function("rpc.test.remote_return_nd")
    get_arr, ref_count = get("get_arr"), get("ref_count")
    before = ref_count()
    arrays = [get_arr(), get_arr()]
    assert ref_count() == before + 2
    del arrays
    gc.collect()
    assert ref_count() == before


@case
def folders(args):
    """Not on the reference's server, which makes no folders."""
    session = connect(args)
    session.upload(bytearray(b"in a folder"), "a/b/dat.bin")
    assert session.download("a/b/dat.bin") == b"in a folder"
    assert "dat.bin" in session.get_function("tvm.rpc.server.listdir")("a/b")


@case
def file_names_stay_inside(args):
    session = connect(args)
    for name in ["../x", "/x", "a/../../x", "/tmp/x", ".."]:
        raises(RuntimeError, lambda name=name: session.upload(bytearray(b"x"), name), "work directory")
        raises(RuntimeError, lambda name=name: session.download(name), "work directory")


@case
def system_library(args):
    session = connect(args)
    library = session.system_lib()
    raises(AttributeError, lambda: library["notexist"])
    a = tvm.runtime.tensor(np.arange(8, dtype="float32"), session.cpu(0))
    total = tvm.runtime.tensor(np.zeros(8, dtype="float32"), session.cpu(0))
    library["vadd"](a, a, total)
    np.testing.assert_equal(total.numpy(), 2 * np.arange(8))
    evaluate = library.time_evaluator("vadd", session.cpu(0), number=5, repeat=3)
    result = evaluate(a, a, total)
    assert len(result.results) == 3 and all(cost > 0 for cost in result.results)


@case
def one_session_after_the_other(args):
    for _ in range(20):
        session = connect(args)
        assert session.get_function("rpc.test.addone")(1) == 2
        del session
        gc.collect()


@case
def unknown_constructor(args):
    raises(
        tvm.error.RPCError,
        lambda: connect(args, session_constructor_args=["rpc.NonExistingConstructor"]),
        "rpc.NonExistingConstructor",
    )
    constructor = ["rpc.LocalSession"]
    session = connect(args, session_constructor_args=constructor)
    assert session.get_function("rpc.test.addone")(1) == 2


@case
def two_hops(args):
    check_all(through_hop(args))


@case
def wrong_key(args):
    raises(RuntimeError, lambda: rpc.connect(*args.server, key="wrong"))
    assert connect(args).get_function("rpc.test.addone")(1) == 2


@case
def session_timeout(args):
    session = rpc.connect_tracker(*args.tracker).request(args.key, session_timeout=1)
    addone = session.get_function("rpc.test.addone")
    time.sleep(2)
    message = raises(tvm.error.RPCSessionTimeoutError, lambda: addone(10))
    words = 'Your 1.0s session has expired, try to increase the "session_timeout" value.'
    assert words in message, message


@case
def session_timeout_direct(args):
    session = connect(args, session_timeout=1)
    addone = session.get_function("rpc.test.addone")
    time.sleep(2)
    raises(tvm.error.RPCSessionTimeoutError, lambda: addone(10), "Your 1.0s session has expired")
    del addone, session
    gc.collect()
    assert connect(args).get_function("rpc.test.addone")(1) == 2


@case
def main_job(args):
    """Borrow a device, do something on it, give it back; twice."""
    tracker = rpc.connect_tracker(*args.tracker)
    for _ in range(2):
        session = tracker.request(args.key, session_timeout=60)
        check_functions(session)
        check_tensors(session)
        check_files(session)
        del session
        gc.collect()

    def job(session):
        return session.get_function("rpc.test.addone")(41)

    assert tracker.request_and_run(args.key, job, session_timeout=60) == 42


def load(session, file):
    session.upload(os.path.join(os.environ["TVM_RPC_MODULES"], file))
    return session.load_module(file)


def filled(session, shape, seed):
    """Numbers here, and a tensor of them there."""
    numbers = np.random.default_rng(seed).random(shape, dtype="float32")
    return numbers, tvm.runtime.tensor(numbers, session.cpu(0))


def check_kernel(session, module, name, shape, right):
    """Calls and times a function of two arguments and a result, all of one shape."""
    (host_a, a), (host_b, b) = filled(session, shape, 1), filled(session, shape, 2)
    c = tvm.runtime.empty(shape, "float32", session.cpu(0))
    module[name](a, b, c)
    np.testing.assert_allclose(c.numpy(), right(host_a, host_b), rtol=1e-5)
    again = tvm.runtime.empty(shape, "float32", session.cpu(0))
    timing = module.time_evaluator(name, session.cpu(0), number=3, repeat=4)(a, b, again)
    assert len(timing.results) == 4 and all(0 < cost < 10 for cost in timing.results), timing
    np.testing.assert_equal(again.numpy(), c.numpy())


@case
def kernels(args):
    session = opened(args)
    for extension in ["so", "tar", "o"]:
        module = load(session, f"vadd.{extension}")
        check_kernel(session, module, "vadd", (1024,), np.add)
        module = load(session, f"matmul.{extension}")
        check_kernel(session, module, "matmul", (128, 128), np.matmul)
    assert session.download_linked_module("vadd.tar")[:4] == b"\x7fELF"


@case
def objects(args):
    """Functions without arguments, imports, and objects that mean something to the server alone."""
    session = opened(args)
    vadd, answer = load(session, "vadd.so"), load(session, "answer.so")
    assert answer["answer"]() == 42 and answer["answer_of"](-1) == 42
    raises(AttributeError, lambda: vadd["answer"])
    vadd.import_module(answer)
    assert vadd.get_function("answer", query_imports=True)() == 42

    shape = session.get_function("ffi.Shape")(7, 0, 2**40)
    assert session.get_function("rpc.testing.GetShapeSize")(shape) == 3
    element = session.get_function("rpc.testing.GetShapeElem")
    assert [element(shape, index) for index in range(3)] == [7, 0, 2**40]


@case
def system_library_of_the_runtime(args):
    library = opened(args).system_lib()
    raises(AttributeError, lambda: library["notexist"])


@case
def model(args):
    session = opened(args)
    library = load(session, "model.so")
    device = session.cpu(0)
    machine = relax.VirtualMachine(library, device)
    (host_x, x), (host_w, w) = filled(session, (8, 16), 1), filled(session, (16, 4), 2)
    host_b = np.array([-100, -4, 0, 1], dtype="float32")
    machine.set_input("main", x, w, tvm.runtime.tensor(host_b, device))
    machine.invoke_stateful("main")
    result = machine.get_outputs("main").numpy()
    right = np.maximum(host_x @ host_w + host_b, 0)
    np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-5)
    # Both branches of the last operator are taken.
    assert (right == 0).any() and (right > 0).any()
    timing = machine.time_evaluator("invoke_stateful", device, number=3, repeat=4)("main")
    assert len(timing.results) == 4 and all(0 < cost < 10 for cost in timing.results), timing


@case
def wrong_calls(args):
    session = opened(args)
    module = load(session, "vadd.so")
    vadd = module["vadd"]
    _, a = filled(session, (1024,), 1)
    _, short = filled(session, (3,), 1)
    integers = tvm.runtime.empty((1024,), "int32", session.cpu(0))

    def works():
        return check_kernel(session, module, "vadd", (1024,), np.add)

    raises(RuntimeError, vadd, "Expected 3 arguments when calling:", "`vadd(a: Tensor(")
    raises(RuntimeError, lambda: vadd(a, a), "Expected 3 arguments when calling:")
    works()
    raises(RuntimeError, lambda: vadd(a, short, a), "argument #1", "1024")
    works()
    raises(RuntimeError, lambda: vadd(a, integers, a), "argument #1", "float32")
    raises(RuntimeError, lambda: vadd(a, a, "a text"), "argument #2", "Tensor")
    works()
    raises(RuntimeError, lambda: session.load_module("missing.so"), "missing.so")
    session.upload(bytearray(b"no library at all"), "garbage.so")
    garbage = "Failed to load dynamic shared library"
    raises(RuntimeError, lambda: session.load_module("garbage.so"), "garbage.so", garbage)
    raises(AttributeError, lambda: module["missing"], "missing")
    raises(AttributeError, lambda: session.get_function("no.such"), "no.such")
    works()


@case
def crash(args):
    """A function of --library ends its process: the client is told how, and the next session is served."""
    session = connect(args)
    session.upload(args.library)
    module = session.load_module(os.path.basename(args.library))
    ended = "its process ended with signal: 11 (SIGSEGV)"
    raises(Exception, module["dereference_null"], ended)
    del module
    check_values(connect(args))


@case
def summary(args):
    """Prints what the reference's client reads of the tracker, as JSON and as text."""
    tracker = rpc.connect_tracker(*args.tracker)
    print(json.dumps({"summary": tracker.summary(), "text": tracker.text_summary()}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--server", type=address, metavar="HOST:PORT")
    parser.add_argument("--tracker", type=address, metavar="HOST:PORT")
    parser.add_argument("--key", default="")
    parser.add_argument("--hop", type=address, metavar="HOST:PORT")
    parser.add_argument("--hop-key", default="")
    parser.add_argument("--library", metavar="FILE")
    args = parser.parse_args()
    CASES[args.case](args)


if __name__ == "__main__":
    main()
