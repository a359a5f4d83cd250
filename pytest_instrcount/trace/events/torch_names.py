"""What torch's events have besides: times as text, and devices, of which nothing is recorded."""

from __future__ import annotations

import sys
from enum import Enum

DeviceType = Enum("DeviceType", {"CPU": 0, "CUDA": 1})
#: Unit -> microseconds.
TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def time_text(microseconds: float, unit: str | None = None) -> str:
    """A time with a unit, or with the one that suits it.

    >>> time_text(12.5), time_text(12_500), time_text(12_500_000), time_text(12_500, "s")
    ('12.500us', '12.500ms', '12.500s', '0.013s')
    """
    unit = unit or next((name for name, us in TIME_UNITS.items() if abs(microseconds) >= us), "us")
    return f"{microseconds / TIME_UNITS[unit]:.3f}{unit}"


class TorchNames:
    """Names of torch's events that scripts ask for; those of devices and operators are empty."""

    __slots__ = ()

    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = self_cuda_memory_usage = 0
    device_index = fwd_thread = flops = 0
    kernels = concrete_inputs = kwinputs = ()
    device_time_str = device_time_total_str = self_device_time_total_str = time_text(0)
    cuda_time_str = cuda_time_total_str = self_cuda_time_total_str = device_time_str
    overload_name = metadata_json = ""
    use_device = None
    is_legacy = False

    # torch's own, where that is loaded: one equals no other
    device_type = property(
        lambda self: getattr(sys.modules.get("torch.autograd"), "DeviceType", DeviceType).CPU
    )
    is_user_annotation = property(lambda self: self.kind == "range")
    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    is_remote = property(lambda self: bool(self.node_id))
