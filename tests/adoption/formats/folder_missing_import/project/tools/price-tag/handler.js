import { formatMoney } from '../../lib/money.js';
import { ErrorType } from '../_core/error-types.js';

export async function execute({ args }) {
  if (args.cents < 0) {
    return { ok: false, error: { type: ErrorType.VALIDATION, message: 'negative price', retryable: false } };
  }
  return { ok: true, data: { tag: formatMoney(args.cents) } };
}
