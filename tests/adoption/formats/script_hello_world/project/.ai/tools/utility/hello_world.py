# .ai/tools/utility/hello_world.py
__version__ = "1.0.1"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "utility"
__tool_description__ = "Say hello to someone with a personalized greeting message"

def main(name: str = "World") -> str:
    """
    Say hello to someone.
    
    Args:
        name: The name to greet (default: World)
    
    Returns:
        A greeting message
    """
    message = f"Hello, {name}!"
    return message
