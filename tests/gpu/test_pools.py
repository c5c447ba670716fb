"""Pools of GPUs."""

import pickle

import pytest

from mig_opt import InputError, Pool, catalogue, get_gpu
from mig_opt.gpu.pools import pool_problems


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_without_mig_there_is_only_the_whole_gpu_and_it_is_free(gpu):
    kind = Pool(gpu, mig=False).kind
    (whole,) = kind.profiles
    assert whole.compute_slices == gpu.compute_slices
    assert kind.operation_costs.of("create", whole) == kind.operation_costs.of("destroy", whole) == 0
    assert get_gpu(kind.name) is kind
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert Pool(kind, mig=False).kind is kind
    assert Pool(gpu).kind is gpu


def test_a_kind_is_in_one_pool_with_mig_and_in_one_without():
    a30, a100 = get_gpu("A30"), get_gpu("A100")
    assert not list(pool_problems([Pool(a30), Pool(a100), None, Pool(a30, mig=False)]))
    (problem,) = pool_problems([Pool(a30, 1), Pool(a100), Pool(a30, 2)])
    assert str(problem) == "pools[2].gpu: 'A30-24GB' is that of pools[0] already; each needs its own"


def test_an_alias_of_an_unknown_gpu_is_unknown_without_mig_too():
    assert get_gpu("a100 Without mig").name == "A100-40GB without MIG"
    with pytest.raises(InputError, match="unknown GPU"):
        get_gpu("A31 without MIG")
