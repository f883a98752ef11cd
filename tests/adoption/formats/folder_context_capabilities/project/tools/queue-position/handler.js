import { ErrorType } from '../_core/error-types.js';

const QUEUE = ['T1', 'T2', 'T3'];

export async function execute({ args, context }) {
  const { messaging, audit, voice } = context.capabilities;
  const position = QUEUE.indexOf(args.ticket) + 1;
  if (position === 0) {
    return { ok: false, error: { type: ErrorType.NOT_FOUND, message: `No ticket ${args.ticket}`, retryable: false } };
  }
  await messaging.send({ type: 'position', position });
  audit.log('queue_position', { ticket: args.ticket });
  return { ok: true, data: { position, spoken: voice.isActive() } };
}
