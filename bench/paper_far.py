"""The figures of the FAR paper (Villarrubia et al., JPDC 204, 2025), printed and measured."""

from __future__ import annotations

from claims import Claim, Group, Paper, Verdict, compare

from mig_opt import get_gpu


def partitions(_cut: bool) -> Group:
    """Return the number of maximal partitions of each GPU (Figure 1)."""
    claims = []
    for name, printed in {"A30": 5, "A100": 19, "H100": 19}.items():
        found = len(get_gpu(name).maximal_partitions())
        claims.append(Claim(f"partitions of an {name}", *compare(printed, found, within=0, digits=0)))
    return Group("Figure 1", "Partitions of the GPUs", tuple(claims), assumed="None: they follow from the placements.")


def reconfiguration(_cut: bool) -> Group:
    """Return what creations and destructions take (Table 1)."""
    claims = [
        Claim("A30, sizes 1, 2, 4", "0.11, 0.12, 0.13 and 0.10, 0.10, 0.10 s", "", Verdict.CANNOT),
        Claim(
            "A100, sizes 1, 2, 3, 4, 7",
            "0.16, 0.17, 0.20, 0.21, 0.24 and 0.20, 0.20, 0.21, 0.21, 0.22 s",
            "",
            Verdict.CANNOT,
        ),
        Claim(
            "H100, sizes 1, 2, 3, 4, 7",
            "0.16, 0.21, 0.33, 0.38, 0.42 and 0.21, 0.23, 0.25, 0.26, 0.26 s",
            "",
            Verdict.CANNOT,
        ),
    ]
    return Group(
        "Table 1",
        "Seconds to create and to destroy an instance",
        tuple(claims),
        reason="They are measured on GPUs. The catalogue has just these figures, and every method plans with them.",
    )


PAPER = Paper(
    "far",
    "FAR: moldable tasks on MIG",
    'J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task '
    'scheduling", JPDC 204 (2025), doi:10.1016/j.jpdc.2025.105128.',
    {"figure1": partitions, "table1": reconfiguration},
)
