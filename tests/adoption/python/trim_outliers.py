import statistics


def trim_outliers(samples, threshold=3.0, keep_edges=True):
    """
    Drop measurements that lie too far from the median.

    Parameters
    ----------
    samples : list of float
        Raw readings of the sensor, in the order they were taken.
    threshold : float, default 3.0
        How many median absolute deviations a reading may be away.
    keep_edges : bool, optional
        Whether a reading exactly at the threshold is kept (default True).

    Returns
    -------
    dict
        ``kept`` (list), ``dropped`` (int) and ``median`` (float).

    Examples
    --------
    >>> trim_outliers([1, 1, 2, 50])["dropped"]
    1
    """
    if not samples:
        raise ValueError("samples must not be empty")
    median = statistics.median(samples)
    mad = statistics.median(abs(x - median) for x in samples)
    limit = threshold * mad
    if keep_edges:
        kept = [x for x in samples if abs(x - median) <= limit]
    else:
        kept = [x for x in samples if abs(x - median) < limit]
    return {"kept": kept, "dropped": len(samples) - len(kept), "median": float(median)}
