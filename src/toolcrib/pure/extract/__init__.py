"""Values out of answers: a JSONPath (RFC 9535) where the expression begins as one, else a pattern of linear time."""

from toolcrib.pure.extract.extract import Extract, compile_extract, is_json_path

__all__ = ["Extract", "compile_extract", "is_json_path"]
