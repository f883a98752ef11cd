import { ErrorType } from '../_core/error-types.js';

const ORDERS = new Map([
  ['A17', 'shipped'],
  ['B20', 'packed'],
]);

export async function execute({ args }) {
  const status = ORDERS.get(args.order_id);
  if (status === undefined) {
    return {
      ok: false,
      error: { type: ErrorType.NOT_FOUND, message: `There is no order ${args.order_id}`, retryable: false },
    };
  }
  return { ok: true, data: { status, sources: [`orders/${args.order_id}`] } };
}
