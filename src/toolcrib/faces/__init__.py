"""The outsides of the Crib: they translate and decide nothing."""
