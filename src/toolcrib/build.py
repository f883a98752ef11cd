"""Tool folders become tools through their build: all are checked, and a registry says which bytes were.

<root>/<tool>/…               folders of four files
<root>/_core/error-types.js   what handlers import; supplied where there is none
<root>/tool_registry.json     what the build wrote, and agents load when they start
"""

from toolcrib.features.folders.build import Built, Checked, build, check_folders, watch
from toolcrib.features.folders.registry import Registry, Unbuilt, load_registry, unbuilt_folders
from toolcrib.features.folders.starter import starter_files

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
