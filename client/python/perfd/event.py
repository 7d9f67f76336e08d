"""Events of a stream, by their descriptors: what the numbers and texts of an item mean."""
from . import perfd_pb2 as pb
from .errors import ProtocolError, require


class Event:
    """A descriptor, made ready to read items with it. `descriptor` is the EventDescriptor with all else that it says."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.id, self.name, self.period = descriptor.id, descriptor.name, descriptor.period
        self.is_external = descriptor.event.startswith("external:")
        self._fields = [(f.name, f.kind in (pb.FIELD_KIND_TEXT, pb.FIELD_KIND_BYTES), f.count,
                         f.kind == pb.FIELD_KIND_SIGNED) for f in descriptor.fields]
        self._named = [f for f in descriptor.fields if f.values]

    def decode(self, item):
        """{name: value} of one item: numbers as int, arrays as lists, texts as bytes, None for one that a probe could not read."""
        texts = iter([None if i in item.faults else text for i, text in enumerate(item.texts)] if item.faults else item.texts)
        numbers, fields, end = iter(item.numbers), {}, object()

        def number(signed):
            value = next(numbers)
            return value - (1 << 64) if signed and value >> 63 else value

        try:
            for name, is_text, count, signed in self._fields:
                if is_text:
                    fields[name] = next(texts)
                elif count == 1:
                    fields[name] = number(signed)
                else:
                    length = count or next(numbers)
                    require(length <= len(item.numbers), f"an array of {length} in an item of {self.name}")
                    fields[name] = [number(signed) for _ in range(length)]
        except StopIteration:
            raise ProtocolError(f"an item of {self.name} is shorter than its descriptor") from None
        require(next(numbers, end) is end and next(texts, end) is end,
                f"an item of {self.name} is longer than its descriptor")
        return fields

    def names(self, fields):
        """{name: text} of the values that have names, a list for an array."""
        named = {f.name: [render(f, n) for n in fields[f.name]] if f.count != 1 else render(f, fields[f.name])
                 for f in self._named if f.name in fields}
        return {name: text for name, text in named.items() if text}


def render(field, number):
    """The name of a number, or of its flags, as the kernel's own format has it; None if there is none."""
    names = {value.value: value.name for value in reversed(field.values)}
    own = number & ((1 << 8 * min(field.size, 8)) - 1)
    for value in (number & ((1 << 64) - 1), own):
        if value in names:
            return names[value]
    if not field.flags:
        return None
    left, words = own, []
    for value in field.values:
        if value.value and left & value.value == value.value:
            words.append(value.name)
            left &= ~value.value
    return field.delimiter.join(words + [hex(left)] * (left > 0)) if words else None
