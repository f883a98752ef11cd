import { ToolError, ErrorType } from '../_core/error-types.js';

export async function execute({ args, context }) {
  const { query, top_k = 5 } = args;
  if (!query) throw new ToolError(ErrorType.VALIDATION, 'empty', { retryable: false });
  return { ok: true, data: { hits: [`${query} 1`], top: top_k } };
}
