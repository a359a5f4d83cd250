"""The baselines of a run: each is read once, before the first test is measured."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pytest_instrcount.counts.measurement import Counted, Measurement
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.baseline_json import OLDER
from pytest_instrcount.gate.store.schema import MOST_NAMES, Baseline, raw_baseline

Record = TypeVar("Record", Measurement, Baseline)


def packed(record: Counted) -> bytes:
    """A record in few bytes: a suite can have thousands of tests."""
    return zlib.compress(pickle.dumps(record, pickle.HIGHEST_PROTOCOL), 1)


def unpacked(data: bytes, kind: type[Record]) -> Record:
    """The record that was `packed`."""
    record = pickle.loads(zlib.decompress(data))
    assert isinstance(record, kind)
    return record


@dataclass(slots=True)
class Baselines:
    """Reads the baselines of a store, each once; ``updating`` as of `Store.read`."""

    store: Store
    updating: bool
    #: functions that are noise, by what baselines say that were read
    noise: set[str] = field(default_factory=set)
    #: tests whose profiles are not there
    lost: set[str] = field(default_factory=set)
    #: nodeid of a test -> what it was called when its baseline was made
    renamed: dict[str, str] = field(default_factory=dict)
    _read: dict[str, bytes | InstrcountError | None] = field(default_factory=dict)
    #: the one that was asked for last
    _last: tuple[str, Baseline] | None = None

    def get(self, nodeid: str) -> Baseline | InstrcountError | None:
        """The baseline of a test; an error where its file cannot be read.

        Raises InstrcountError where it is of an older format: so are all others.
        """
        if self._last is not None and self._last[0] == nodeid:
            return self._last[1]
        if nodeid not in self._read:
            found = self._read_file(nodeid)
            self._read[nodeid] = packed(found) if isinstance(found, Baseline) else found
        else:
            known = self._read[nodeid]
            found = unpacked(known, Baseline) if isinstance(known, bytes) else known
        if isinstance(found, Baseline):
            self._last = nodeid, found
        return found

    def _read_file(self, nodeid: str) -> Baseline | InstrcountError | None:
        try:
            found = self.store.read(self.renamed.get(nodeid, nodeid), updating=self.updating)
        except InstrcountError as error:
            if error.slug == OLDER:
                raise
            return error
        if found is not None and nodeid in self.renamed:
            names = (*found.formerly, found.nodeid)[-MOST_NAMES:]
            found = replace(found, nodeid=nodeid, formerly=names)
        if found is not None:
            known = found.denoised
            self.noise.update(() if known is None else known.noise.functions)
            if found.lost:
                self.lost.add(nodeid)
        return found

    def read_again(self, nodeids: Iterable[str]) -> None:
        """Read baselines that others have written anew."""
        self._last = None
        for nodeid in nodeids:
            del self._read[nodeid]
            self.get(nodeid)

    def hold(self, measurement: Measurement, environment: Mapping[str, str]) -> bool:
        """True if the baseline of a test holds this very count, and more layouts of it."""
        old = self.get(measurement.nodeid)
        if not isinstance(old, Baseline) or measurement.nodeid in self.renamed:
            return False
        if old.denoised is None or old.denoised.layouts == 1:
            return False
        raw = replace(old, denoised=None, python=None, ledger=(), body="", formerly=())
        return raw == raw_baseline(measurement, environment)

    def have_changed(self, nodeid: str) -> bool:
        """True if somebody has stored another baseline of a test since it was read."""
        read = None if nodeid in self.renamed else self.get(nodeid)
        return self.store.read(nodeid, updating=True) != read

    def has(self, nodeid: str) -> bool:
        """True if a test that was asked for has a baseline that can be read."""
        return isinstance(self._read[nodeid], bytes)

    def is_outdated(self, nodeid: str) -> bool:
        """True if an update is to store a baseline anew, whatever was counted."""
        return nodeid in self.renamed or nodeid in self.lost

    def paths(self) -> set[Path]:
        """The files of all that were asked for."""
        return {self.store.path(self.renamed.get(nodeid, nodeid)) for nodeid in self._read}
