# -*- coding: utf-8 -*-
# Wasserabrechnung der Gemeinde

from decimal import Decimal

GEBÜHR = Decimal("1.85")
GRUND = {"klein": Decimal("4.00"), "groß": Decimal("9.50")}


def abrechnung(zählerstand_alt: int, zählerstand_neu: int, zähler: str = "klein") -> Decimal:
	"""Rechnungsbetrag für Wasser.

	:param zählerstand_alt: Stand zu Beginn in m³
	:param zählerstand_neu: Stand am Ende in m³
	:param zähler: klein oder groß
	"""
	if zählerstand_neu < zählerstand_alt:
		raise ValueError("Der neue Zählerstand ist kleiner als der alte")
	return GRUND[zähler] + (zählerstand_neu - zählerstand_alt) * GEBÜHR
