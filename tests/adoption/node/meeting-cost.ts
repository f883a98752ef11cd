// cost of a meeting, for the dashboard

interface Attendee {
  name: string;
  hourlyRate: number;
}

export interface Options {
  attendees: Attendee[];
  minutes: number;
  currency?: 'EUR' | 'USD';
}

export interface Cost {
  total: number;
  currency: string;
  perMinute: number;
}

/** What a meeting costs. */
export function meetingCost({ attendees, minutes, currency = 'EUR' }: Options): Cost {
  if (minutes <= 0) throw new RangeError('minutes must be positive');
  const perMinute = attendees.reduce((sum: number, a) => sum + a.hourlyRate, 0) / 60;
  return { total: round(perMinute * minutes), currency, perMinute: round(perMinute) };
}

function round(x: number): number {
  return Math.round(x * 100) / 100;
}
