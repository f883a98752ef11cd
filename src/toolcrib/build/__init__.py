"""Tool folders become tools through their build: all are checked, and a registry says which bytes were.

<root>/<tool>/…               folders of four files
<root>/_core/error-types.js   what handlers import; supplied where there is none
<root>/tool_registry.json     what the build wrote, and agents load when they start
"""

from toolcrib.build.building import Built, build
from toolcrib.build.check import Checked, check_folders
from toolcrib.build.registry import Registry, Unbuilt, load_registry, unbuilt_folders
from toolcrib.build.starter import starter_files
from toolcrib.build.watching import watch

__all__ = [
    "Built",
    "Checked",
    "Registry",
    "Unbuilt",
    "build",
    "check_folders",
    "load_registry",
    "starter_files",
    "unbuilt_folders",
    "watch",
]
