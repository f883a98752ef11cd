import datetime as dt


def shift_end(begin: dt.datetime, length: dt.timedelta, pause_after: dt.time = dt.time(12, 0)) -> dt.datetime:
    """When a shift ends; half an hour of pause is added if it runs over pause_after."""
    end = begin + length
    pause = dt.datetime.combine(begin.date(), pause_after, tzinfo=begin.tzinfo)
    if begin < pause < end:
        end += dt.timedelta(minutes=30)
    return end
