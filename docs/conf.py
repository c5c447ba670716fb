"""Settings of the site; ``sphinx-build -W --keep-going docs site`` builds it, and any warning is a failure."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from numpydoc import xref

import mig_opt  # the extensions read it as well

xref.DEFAULT_LINKS.clear()  # to the site of Python: this one is built without any other

project = "mig_opt"
author = "The mig_opt authors"
version = release = mig_opt.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",  # docstrings in NumPy style
    "myst_nb",  # pages in Markdown, notebooks as pages
    "sphinx_copybutton",
    "mathml",  # formulas without a script from elsewhere
    "generated",  # what stands in the package, the repository and the results of benchmarks
]
exclude_patterns = ["extensions"]
nitpicky = True  # a name that leads nowhere is a warning

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
smartquotes = False  # they would make a dash of the two of an option
nb_execution_mode = "off"  # notebooks are shown as they are stored; a test executes them

autodoc_typehints = "none"  # types stand in the lists of parameters
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but for the names below
numpydoc_xref_aliases = {
    name: f"mig_opt.{name}" for name in mig_opt.__all__ if isinstance(getattr(mig_opt, name), type)
}

html_theme = "furo"
html_title = f"mig_opt {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["sortable.js"]
html_show_copyright = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
