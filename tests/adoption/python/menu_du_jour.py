# -*- coding: latin-1 -*-
def menu_du_jour(jour="lundi"):
    """Le menu du jour: crêpes le lundi.

    :param jour: le jour
    :type jour: str
    """
    plats = {"lundi": "crêpes", "mardi": "pâté"}
    return plats.get(jour, "fermé")
