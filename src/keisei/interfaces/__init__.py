"""What Keisei shows to people: charts, as SVG and on a terminal."""
