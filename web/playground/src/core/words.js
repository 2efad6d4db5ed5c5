// @ts-check
// Words for enumerators that several writers use.

/** How a request ended, by number. */
export const STATUS_WORDS = ['completed', 'rejected', 'canceled', 'failed'];
