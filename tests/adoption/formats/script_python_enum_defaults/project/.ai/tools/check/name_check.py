__tool_id__ = "name-check"
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "check"
__tool_description__ = "Check a name"
__parameters__ = [
    {"name": "service_name", "type": "string", "required": True, "description": "The service", "minLength": 3, "pattern": "^[a-z][a-z0-9-]*$"},
    {"name": "level", "type": "string", "enum": ["info", "debug"], "default": "info", "description": "The level"},
]


def main(service_name, level="info"):
    return {"ok": True, "service": service_name, "level": level}


if __name__ == "__main__":
    import sys, json
    print(json.dumps(main(*sys.argv[1:])))
