"""Tables of operation costs by the program that does the operations."""

import pytest

from mig_opt import InputError, catalogue, cost_tables, get_costs, get_gpu
from mig_opt.gpu.problems import operation_problems


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
@pytest.mark.parametrize("name", cost_tables())
def test_every_table_has_every_size_and_a_source(name, gpu):
    costs = get_costs(name, gpu)
    assert list(operation_problems(gpu, costs)) == []
    assert costs.source
    assert all(seconds > 0 for table in (costs.create, costs.destroy) for seconds in table.values())


def test_the_drivers_own_times_are_the_usual_ones_and_the_shortest():
    a100 = get_gpu("A100")
    assert get_costs("nvml", "A100") == a100.operation_costs
    slower = [get_costs(name, a100) for name in ("nvidia-smi", "kubernetes")]
    for size in a100.sizes:
        seconds = [costs.create[size] for costs in (a100.operation_costs, *slower)]
        assert seconds == sorted(set(seconds))
    assert all(costs.assumed for costs in slower)


def test_names_that_do_not_exist():
    with pytest.raises(InputError, match="no table of costs is called 'nvidia_smi'; did you mean nvidia-smi"):
        get_costs("nvidia_smi", "A100")
    with pytest.raises(InputError, match="unknown GPU"):
        get_costs("nvml", "A101")
    with pytest.raises(InputError, match="must be a string"):
        get_costs(7, "A100")
