from .face import *  # noqa: F403  # the names of ``__all__``
