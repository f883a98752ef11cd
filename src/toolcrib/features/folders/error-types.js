/**
 * The reasons for which a tool can fail, and the error that carries one of them.
 *
 * The build put this file here because there was none; it is never overwritten.
 */

export const ErrorType = Object.freeze({
  VALIDATION: 'VALIDATION',
  NOT_FOUND: 'NOT_FOUND',
  INTERNAL: 'INTERNAL',
  MODE_RESTRICTED: 'MODE_RESTRICTED',
  BUDGET_EXCEEDED: 'BUDGET_EXCEEDED',
  CONFIRMATION_REQUIRED: 'CONFIRMATION_REQUIRED',
  SESSION_INACTIVE: 'SESSION_INACTIVE',
  TRANSIENT: 'TRANSIENT',
  PERMANENT: 'PERMANENT',
  RATE_LIMIT: 'RATE_LIMIT',
  AUTH: 'AUTH',
  CONFLICT: 'CONFLICT',
  BLOCKED: 'BLOCKED',
  DISABLED: 'DISABLED',
  CAPABILITY_MISSING: 'CAPABILITY_MISSING',
  TIMEOUT: 'TIMEOUT',
  OUTPUT_INVALID: 'OUTPUT_INVALID',
  HOST_NOT_ALLOWED: 'HOST_NOT_ALLOWED',
  LIMIT_EXCEEDED: 'LIMIT_EXCEEDED',
  EXECUTOR_NOT_FOUND: 'EXECUTOR_NOT_FOUND',
  CIRCULAR_DEPENDENCY: 'CIRCULAR_DEPENDENCY',
  CHAIN_TOO_DEEP: 'CHAIN_TOO_DEEP',
  LOOP_DETECTED: 'LOOP_DETECTED',
  SANDBOX_UNAVAILABLE: 'SANDBOX_UNAVAILABLE',
  OVERLOADED: 'OVERLOADED',
  CANCELLED: 'CANCELLED',
});

export class ToolError extends Error {
  /**
   * @param {string} type - one of ErrorType
   * @param {string} message - what went wrong, and what helps
   * @param {object} [facts]
   * @param {boolean} [facts.retryable] - whether the same call may succeed later
   * @param {boolean} [facts.partialSideEffects] - whether something was changed already
   * @param {object} [facts.details] - further facts for the caller
   */
  constructor(type, message, { retryable = false, partialSideEffects = false, details } = {}) {
    super(message);
    this.name = 'ToolError';
    this.type = type;
    this.retryable = retryable;
    this.partialSideEffects = partialSideEffects;
    this.details = details;
  }
}
