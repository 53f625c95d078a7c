#!/usr/bin/env bash
real=@REAL@ cache=@CACHE@ root=@ROOT@
given=("$@") compiling= output= source= known=1 kept=$cache
while (($#)); do
    case $1 in
        -c) compiling=1 ;;
        -o) output=$2; shift ;;
        -I* | -isystem)
            folder=${1#-I}
            if [[ $1 = -isystem ]]; then folder=$2; shift; fi
            case $folder in "$root"/kernels/* | "$root"/plugins/*) ;; *) known= ;; esac
            kept+=/I${folder//\//_} ;;
        -*) kept+=/${1//\//_} ;;
        "$root"/kernels/*.c | "$root"/plugins/*.c)
            if [[ -n $source ]]; then known=; fi
            source=$1 ;;
        *) known= ;;
    esac
    shift
done
if [[ -z $compiling || -z $known || -z $source || -z $output ]]; then
    exec "$real" "${given[@]}"
fi
object=$kept/${source//\//_}.o
if [[ -f $object ]]; then
    exec cp "$object" "$output"
fi
"$real" "${given[@]}" || exit
mkdir -p "$kept" && cp "$output" "$object.$$" && mv "$object.$$" "$object"
