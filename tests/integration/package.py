"""The package of client/python, as it is in the folder of the build.

It is called perfd, as the module here is that starts daemons, and so has another name in the tests.
"""
import importlib.util
import os
import sys

from running import BUILD

FOLDER = os.path.join(BUILD, "client", "python", "perfd")


def load():
    """The package itself takes the place of this module."""
    spec = importlib.util.spec_from_file_location(__name__, os.path.join(FOLDER, "__init__.py"),
                                                  submodule_search_locations=[FOLDER])
    package = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = package
    spec.loader.exec_module(package)


load()
