"""Profile tables, demands and deployments as hypothesis draws them, for the tests of their files."""

from hypothesis import strategies as st

from mig_opt import Deployment, Device, GpuModel, Point, ProfileTable, Segment, catalogue
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule

figures = st.floats(min_value=1e-9, max_value=1e12)
counts = st.integers(min_value=1, max_value=2**31 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
gpus: st.SearchStrategy[GpuModel] = st.sampled_from(catalogue())


@st.composite
def tables(draw: st.DrawFn, model: str, gpu: GpuModel) -> ProfileTable:
    ways = st.tuples(st.sampled_from(gpu.sizes), counts, counts)
    points = [
        Point(*way, draw(figures), draw(figures)) for way in draw(st.lists(ways, min_size=1, max_size=4, unique=True))
    ]
    return ProfileTable(model, gpu.name, tuple(points), draw(st.none() | figures))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    kinds = draw(st.lists(gpus, min_size=1, max_size=2, unique_by=lambda gpu: gpu.name))
    models = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    services = [
        Service(name, draw(figures), draw(figures), draw(st.sampled_from(models)), draw(st.integers(1, 10_000)))
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    ]
    shares = st.floats(min_value=1e-9, max_value=1)
    return Demand(
        tuple(services),
        tuple(draw(tables(model, kind)) for model in models for kind in kinds),
        tuple(GpuPool(kind, draw(st.none() | counts)) for kind in kinds),
        SloRule(draw(st.just(0.5) | shares), draw(st.booleans())),
        draw(st.none() | counts),
    )


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """Any segments: they may overlap, begin where nothing can begin, and lack figures."""
    kinds = draw(st.lists(gpus, min_size=1, max_size=3))
    figure = st.just(0.0) | st.floats(allow_nan=False, allow_infinity=False)

    def segment() -> Segment:
        index = draw(st.integers(0, len(kinds) - 1))
        profile = draw(st.sampled_from(kinds[index].profiles)).name
        whole = st.integers(min_value=-2, max_value=2**40)
        return Segment(draw(names), index, profile, draw(whole), draw(whole), draw(whole), draw(figure), draw(figure))

    segments = tuple(segment() for _ in range(draw(st.integers(0, 4))))
    known = range(draw(st.integers(0, len(kinds))))  # the others are new
    return Deployment(
        tuple(k.name for k in kinds), segments, tuple(Device(2 * gpu, "n1", f"GPU-{gpu}") for gpu in known)
    )
