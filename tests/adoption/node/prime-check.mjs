// top-level await, and the result as an object on the console
const n = Number(process.argv[2]);

async function isPrime(x) {
  for (let i = 2; i * i <= x; i++) {
    if (x % i === 0) return false;
    if (i % 1000 === 0) await null;
  }
  return x > 1;
}

if (!Number.isSafeInteger(n)) {
  throw new TypeError(`argument must be a whole number, got ${process.argv[2]}`);
}
console.log({ n, prime: await isPrime(n) });
