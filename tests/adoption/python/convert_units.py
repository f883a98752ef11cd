"""Unit conversion as a class."""


class Converter:
    """Converts."""

    factor = 2.54

    def __call__(self, inches: float) -> float:
        return inches * self.factor

    @staticmethod
    def to_inches(cm: float) -> float:
        """Centimetres to inches."""
        return round(cm / 2.54, 2)


convert_units = Converter()
to_inches = Converter.to_inches
to_cm = lambda inches: inches * 2.54
