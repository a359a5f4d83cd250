"""What torch's events have besides: times as text, and devices, of which nothing is recorded."""

from __future__ import annotations

from typing import ClassVar

#: Unit -> microseconds.
TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def time_text(microseconds: float, unit: str | None = None) -> str:
    """A time with a unit, or with the one that suits it.

    >>> time_text(12.5), time_text(12_500), time_text(12_500_000), time_text(12_500, "s")
    ('12.500us', '12.500ms', '12.500s', '0.013s')
    """
    suited = (name for name, size in TIME_UNITS.items() if abs(microseconds) >= size)
    unit = unit or next(suited, "us")
    return f"{microseconds / TIME_UNITS[unit]:.3f}{unit}"


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
    device_time_str = device_time_total_str = self_device_time_total_str = time_text(0)
    overload_name: ClassVar = ""
    use_device: ClassVar = None
    is_legacy: ClassVar = False

    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    is_remote = property(lambda self: bool(self.node_id))
