"""Allocation optimisation: GPUs with little on them give it to others in small pieces (ParvaGPU, Algorithm 2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from mig_opt.control import Control
from mig_opt.heuristics.serving.demand_matching import Need, small_segments
from mig_opt.heuristics.serving.rack import Piece, Rack, largest_first
from mig_opt.heuristics.serving.segment_relocation import fit, start_order
from mig_opt.serving.deployment import Deployment

SMALL = (1, 2)
"""Compute slices of the segments that replace others."""


def optimize(rack: Rack, needs: Mapping[int, Need], control: Control[Deployment]) -> None:
    """Take apart the GPUs with few allocated slices, from the last one on.

    Each service gets small segments for the throughput that it loses, less what small segments of GPUs before gave it
    beyond that, and these are put on the first GPUs with room. The GPU that was taken apart is empty meanwhile, so they
    may come back to it. A segment of a service without small options moves as it is; no service falls below the
    replicas that it needs.

    Parameters
    ----------
    rack : Rack
        What was placed; every step leaves a rack that serves as much as before.
    needs : mapping of int to Need
        What each service on the rack needs.
    control : Control
        Limits.
    """
    optimization = _Optimization(rack, needs)
    for index in range(len(rack) - 1, -1, -1):
        if control.expired:
            return
        if rack.on(index) and is_fragmented(rack, index):
            optimization.take_apart(index)


def is_fragmented(rack: Rack, index: int) -> bool:
    """Whether so little of a GPU is allocated that it should be taken apart.

    The paper's threshold is 4 of the 7 compute slices of an A100; other GPUs have the same share of theirs.
    """
    return rack.compute_slices(index) * 7 < 4 * rack.gpu.compute_slices


class _Optimization:
    def __init__(self, rack: Rack, needs: Mapping[int, Need]) -> None:
        self._rack = rack
        self._needs = needs
        self._divisible = {
            service for service, need in needs.items() if any(option.point.size in SMALL for option in need.options)
        }
        self._counts = Counter(piece.service for piece in rack.pieces())
        # Requests per second that a service has lost; below zero what it has been given too much.
        self._released: defaultdict[int, float] = defaultdict(float)

    def take_apart(self, index: int) -> None:
        queue: list[Piece] = []
        divided: dict[int, None] = {}  # a set in the order of the segments
        for piece in self._rack.clear(index):
            if piece.service not in self._divisible:
                queue.append(piece)
                continue
            divided[piece.service] = None
            self._counts[piece.service] -= 1
            self._released[piece.service] += piece.option.point.throughput
        for service in divided:
            queue += self._replacements(self._needs[service])
        for piece in largest_first(queue):
            if not fit(self._rack, piece):
                self._rack.put_new(piece, start_order(self._rack.gpu, piece.profile).preferred)

    def _replacements(self, need: Need) -> list[Piece]:
        service = need.service
        options = list(small_segments(need, self._released[service], SMALL))
        smallest = need.options[0]  # a small one, as the service is divisible
        options += [smallest] * (need.replicas - self._counts[service] - len(options))
        self._counts[service] += len(options)
        self._released[service] -= sum(option.point.throughput for option in options)
        return [Piece(service, option) for option in options]
