// Fills a hash table of ENTRIES records and looks keys up in random order, ROUNDS times.
const [entries, rounds] = process.argv.slice(2).map(Number);
const table = new Map();
for (let i = 0; i < entries; i++) table.set(`key-${i}`, [i, i * 0.5]);
let state = 7, total = 0;
for (let round = 0; round < rounds; round++)
  for (let i = 0; i < entries; i++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    total += table.get(`key-${state % entries}`)[0];
  }
console.log(total);
