// Fills a hash table of ENTRIES records and looks keys up in random order, ROUNDS times.
import java.util.HashMap;
import java.util.Random;

public class Table {
  public static void main(String[] arguments) {
    int entries = Integer.parseInt(arguments[0]), rounds = Integer.parseInt(arguments[1]);
    HashMap<Long, long[]> table = new HashMap<>();
    for (long i = 0; i < entries; i++) table.put(i, new long[] {i, i * i, -i});
    long total = 0;
    for (int round = 0; round < rounds; round++) {
      Random random = new Random(7);
      for (int i = 0; i < entries; i++) total += table.get((long) random.nextInt(entries))[1];
    }
    System.out.println(total);
  }
}
