def legal_text(text, width = 40, *, indent = "  ", upper = False, margin = None, lines = []):
	"""
	Wrap a text.

	:param str text: the text
	:param int width: columns
	:param indent: what begins each line
	:type indent: str
	:param bool upper: shout
	:param margin: extra columns
	:type margin: int or None
	:param lines: lines to begin with
	:type lines: list of str
	:returns: the lines
	:rtype: list[str]
	"""
	import textwrap
	if margin:
		width -= margin
	out = list(lines) + textwrap.wrap(text.upper() if upper else text, width, initial_indent=indent)
	return out
