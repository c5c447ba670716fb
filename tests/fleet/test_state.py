"""Fleet states."""

import pytest

from mig_opt import FleetState, HeldInstance, InputError, Migration, get_gpu

A100 = get_gpu("A100")


def test_all_problems_are_told_at_once() -> None:
    places = [(0, "2g.10gb", 1), (2, "1g.5gb", 0), (1, "4g.20gb", 0), (1, "1g.5gb", 3)]
    places += [(1, "1g.5gb+me", 4), (1, "1g.5gb+me", 5)]
    with pytest.raises(InputError) as caught:
        FleetState(A100, 2, tuple(HeldInstance(*place) for place in places))
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["instances[0].start", "instances[1].gpu", "instances[3]", "instances[5]"]


@pytest.mark.parametrize(
    ("arguments", "path"), [(("A100", 1, ()), "gpu"), ((A100, 0, ()), "gpus"), ((A100, 1, (1,)), "instances[0]")]
)
def test_wrong_types(arguments: tuple[object, ...], path: str) -> None:
    with pytest.raises(InputError) as caught:
        FleetState(*arguments)  # type: ignore[arg-type]
    assert caught.value.problems[0].path == path


def test_migrations_keep_names_and_pins() -> None:
    state = FleetState(A100, 2, (HeldInstance(0, "1g.5gb", 0, "a"), HeldInstance(0, "1g.5gb", 1, "b", pinned=True)))
    moved = state.after([Migration(0, "1g.5gb", 0, 1, 4), Migration(1, "1g.5gb", 4, 1, 6)])
    assert moved.instances == (HeldInstance(1, "1g.5gb", 6, "a"), HeldInstance(0, "1g.5gb", 1, "b", pinned=True))
    assert moved.on(0) == (moved.instances[1],)
    with pytest.raises(InputError, match=r"migrations\[0\]: there is no 1g.5gb@2 on GPU 0 then"):
        state.after([Migration(0, "1g.5gb", 2, 1, 4)])
    with pytest.raises(InputError, match="overlaps"):
        state.after([Migration(0, "1g.5gb", 0, 0, 1)])
