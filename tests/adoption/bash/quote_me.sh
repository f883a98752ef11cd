#!/bin/bash
# Usage: quote_me.sh TEXT
echo "<$1>"
