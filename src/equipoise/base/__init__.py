"""What every room uses: errors, array types, names and labels, validation, wording of numbers, tables, the terminal."""
