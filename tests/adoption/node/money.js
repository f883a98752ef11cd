// helpers for money, all static

class Money {
  static format(cents, currency = 'EUR') {
    if (!Number.isInteger(cents)) throw new TypeError('cents must be whole');
    return `${(cents / 100).toFixed(2)} ${currency}`;
  }

  static split(cents, ways) {
    if (ways < 1) throw new RangeError('ways must be 1 or more');
    const share = Math.floor(cents / ways);
    const rest = cents - share * ways;
    return Array.from({ length: ways }, (_, i) => share + (i < rest ? 1 : 0));
  }
}

module.exports = Money;
