# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes headers as a C++ array of names and texts: cmake -DOUTPUT=F -DBASE=DIR -DHEADERS=a;b -P EmbedHeaders.cmake
set(entries "")
foreach(header IN LISTS HEADERS)
  file(READ ${BASE}/${header} text)
  string(APPEND entries "{\"${header}\", R\"__(${text})__\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${entries}")
