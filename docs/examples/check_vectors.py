"""A first decoder of the ffi dialect, checked against the golden vectors. Python 3 alone."""
import json, pathlib, struct, sys

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0
    def take(self, count):
        if count > len(self.data) - self.at:
            raise ValueError(f"stops at offset {self.at}")
        self.at += count
        return self.data[self.at - count:self.at]
    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

def value(r):
    kind = r.number("i")
    if kind == 0: return None
    if kind in (1, 2): return r.number("q")
    if kind == 4: return hex(r.number("Q"))
    if kind == 6: return [r.number("i"), r.number("i")]
    if kind == 8: return r.take(r.number("Q")).decode()
    raise NotImplementedError(f"type {kind}")

def values(packet):
    r = Reader(packet)
    length, code = r.number("Q"), r.number("i")
    if code == 2: raise NotImplementedError("init")
    if code == 3: r.number("Q")  # The function stands before its arguments.
    count = r.number("i")
    if count < 0: raise ValueError(f"{count} values")
    found = [value(r) for _ in range(count)]
    if r.at != length + 8: raise ValueError(f"more at offset {r.at}")
    return found

right = later = 0
folder = sys.argv[1] if len(sys.argv) > 1 else "tests/vectors"
file = pathlib.Path(folder, "messages", "values-ffi.json")
for vector in json.loads(file.read_text("utf-8"))["vectors"]:
    try: found = values(bytes.fromhex(vector["hex"]))
    except NotImplementedError: later += 1; continue
    except ValueError: found = "invalid"
    valid = vector["status"] != "invalid"
    expected = [arg["value"] for arg in vector["decoded"]["args"]] if valid else "invalid"
    assert found == expected, f"{vector['name']}: {found}, not {expected}"
    right += 1
print(f"{right} vectors are right, {later} are for later")
