class BaseTool:
    name: str = ""
    description: str = ""
    parameters: dict = {"type": "object", "properties": {}}

    async def execute(self, arguments):
        raise NotImplementedError

    def to_openai(self):
        return {"type": "function", "function": {"name": self.name, "description": self.description, "parameters": self.parameters}}


def create_json_schema(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def money(amount, currency):
    return f"{amount:.2f} {currency}"
