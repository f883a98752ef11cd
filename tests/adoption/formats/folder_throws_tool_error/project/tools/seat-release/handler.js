import { ToolError, ErrorType } from '../_core/error-types.js';

export async function execute({ args, context }) {
  if (args.seat.startsWith('13')) {
    throw new ToolError(ErrorType.TRANSIENT, 'Seat service is not reachable', {
      retryable: true,
      partialSideEffects: false,
    });
  }
  if (args.seat.startsWith('1A')) {
    return { ok: false, error: { type: 'SEAT_LOCKED', message: 'Seat 1A is locked', retryable: false } };
  }
  context.audit.log('seat_released', { seat: args.seat });
  return { ok: true, data: { released: args.seat }, intents: [{ type: 'SUPPRESS_AUDIO', value: false }] };
}
