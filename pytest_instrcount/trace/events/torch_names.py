"""What torch's events have besides: times as text, and devices, of which nothing is recorded."""

from __future__ import annotations

from typing import ClassVar


def time_text(microseconds: float) -> str:
    """A time with the unit that suits it.

    >>> time_text(12.5), time_text(12_500), time_text(12_500_000)
    ('12.500us', '12.500ms', '12.500s')
    """
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if abs(microseconds) >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class TorchNames:
    """Names of torch's events that scripts ask for; those of devices and operators are empty."""

    __slots__ = ()

    device_time: ClassVar = 0.0
    device_time_total: ClassVar = 0.0
    self_device_time_total: ClassVar = 0.0
    device_memory_usage: ClassVar = 0
    self_device_memory_usage: ClassVar = 0
    cuda_time = cuda_time_total = self_cuda_time_total = device_time
    flops: ClassVar = 0
    kernels: ClassVar = ()
    use_device: ClassVar = None
    is_legacy: ClassVar = False

    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    is_remote = property(lambda self: bool(self.node_id))
