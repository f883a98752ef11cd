import { RATES, round } from '../_shared/rates.js';

export async function execute({ args, context }) {
  return { ok: true, data: { vat: round(args.net * RATES[args.country] / 100), by: context.tool.id } };
}
